"""`docs/ops.md` is what the records say."""

from __future__ import annotations


def test_the_table_of_operations_is_current(fresh_process) -> None:
    # In a process of its own: other tests register ops to be thrown away.
    done = fresh_process(
        "from tools.ops_table import PAGE, table\n"
        "print('current' if PAGE.read_text() == table() else 'run python -m tools.ops_table')"
    )
    assert done.stdout.split()[-1:] == ["current"], done.stdout
