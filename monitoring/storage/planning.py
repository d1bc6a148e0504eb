"""How Postgres goes about the larger questions, within one transaction."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def steady_plans(seconds: int) -> Iterator[None]:
    """No statement in it takes longer than that.

    A day's table is new every midnight, so its statistics say that it is empty; a plan that
    believes them compares every row with every other. Compiling a plan costs more than it saves.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT set_config('statement_timeout', %s, true), set_config('jit', 'off', true), "
                "set_config('enable_nestloop', 'off', true), set_config('work_mem', '96MB', true)",
                [f"{seconds}s"],
            )
        yield
