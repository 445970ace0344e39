"""The runner of examples finds what it should and reports what is wrong."""

import types

from tests.docs import examples

PAGE = """Text.

```python
>>> x = 1
>>> x + 1
2
```

```sh
>>> not python
```

```python
>>> x + 2
4
```
"""


def test_a_wrong_output_in_markdown_is_reported_at_its_line() -> None:
    session = examples.in_markdown(PAGE, "page.md", {})
    assert [one.lineno for one in session.examples] == [3, 4, 13]
    (report,) = examples.run([session])
    assert "line 14" in report
    assert "Expected:\n    4\nGot:\n    3" in report


def test_a_right_one_is_not() -> None:
    assert list(examples.run([examples.in_markdown(PAGE.replace("4\n", "3\n"), "p", {})])) == []


def test_functions_and_objects_of_ours_are_found(monkeypatch) -> None:
    monkeypatch.setattr(examples, "common", lambda: {"np": __import__("numpy")})
    module = types.ModuleType("primal.sample")
    module.__file__ = "sample.py"
    source = '''
"""A module.

>>> np.float32(1).item() + one
2.0
"""
one = 1

class Record:
    """A class."""
    def __init__(self, doc):
        self.__doc__ = doc

def function():
    """
    >>> function()
    0
    """
    return 1

record = Record(">>> one\\n1")
silent = Record("No example.")
'''
    exec(compile(source, "sample.py", "exec"), vars(module))
    found = examples.in_module(module)
    assert {test.name.rpartition(".")[2] for test in found} == {"sample", "function", "record"}
    (report,) = examples.run(found)
    assert "function()" in report
