"""Import the library and its NumPy side in a fresh process."""

NAME = "import"
UNIT = "ms"
TARGET = 0.2 / 0.79
GUESTS = ("numpy", "torch")


def fresh(library):
    modules = library if library in GUESTS else f"{library}, {library}.numpy"
    return (
        "import time; start = time.perf_counter()\n"
        f"import {modules}\n"
        "print(time.perf_counter() - start)"
    )
