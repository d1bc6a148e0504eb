#!/usr/bin/env python
"""Tandem's command line: `manage.py up` runs everything."""

import os
import sys


def main() -> int:
    if sys.argv[1:2] == ["up"]:  # It makes the servers that Django's settings ask for.
        from dashboard.up.main import main as up

        return up(sys.argv[2:])

    from dashboard.up.note import use_running_servers

    use_running_servers()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:  # A person's to put right, so a sentence will do.
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
