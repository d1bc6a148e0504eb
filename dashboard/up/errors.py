"""What ends `manage.py up`: a start that cannot go on, or somebody asking it to stop."""


class UpError(RuntimeError):
    """`up` cannot start or go on; the message is one line for the terminal."""


class StopRequested(BaseException):
    """Ctrl-C or SIGTERM. Not an Exception: nothing on the way up may swallow it."""
