import io

from dashboard.up.terminal import Terminal


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(screen: Screen) -> list[str]:
    """The lines as they stand in the end: what was redrawn in place is gone."""
    return [line.rpartition("\x1b[K")[2] for line in screen.getvalue().split("\n")]


def test_on_a_terminal_progress_is_drawn_in_place() -> None:
    screen = Screen()
    terminal = Terminal(screen)
    with terminal.stage("Deploying smollm2"):
        terminal.progress("rank 0 loading 10 %")
        terminal.progress("rank 0 loading 90 %")
        terminal.line("worker was killed by SIGKILL")
    lines = shown(screen)
    assert lines[0] == "worker was killed by SIGKILL"
    assert lines[1].startswith("Deploying smollm2 … ")
    assert lines[2:] == [""]
    assert "rank 0 loading 90 %" in screen.getvalue()


def test_without_a_terminal_there_are_no_control_characters() -> None:
    stream = io.StringIO()
    terminal = Terminal(stream)
    with terminal.stage("Migrations"):
        terminal.progress("1 of 3")
    assert stream.getvalue().isprintable() or "\x1b" not in stream.getvalue()
    assert stream.getvalue().startswith("Migrations … ")
    assert stream.getvalue().endswith(" s\n")


def test_a_closed_terminal_ends_nothing() -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    Terminal(Gone()).line("Ready")
