import io

import pytest
from django.core.management import call_command


@pytest.mark.django_db
def test_migrations_match_the_models() -> None:
    output = io.StringIO()
    try:
        call_command("makemigrations", check=True, dry_run=True, stdout=output)
    except SystemExit:
        pytest.fail(f"The models have changed:\n{output.getvalue()}")
