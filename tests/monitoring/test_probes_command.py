"""A slow tool is asked in the background; its answer is told until it is too old."""

import threading

import pytest

from monitoring.probes.command import Polled, ToolError, run


class Tool:
    def __init__(self) -> None:
        self.now = 100.0
        self.answer = "one"
        self.fails = ""
        self.asked = 0
        self.polled = Polled(self.ask, period=5.0, clock=lambda: self.now)

    def ask(self) -> str:
        self.asked += 1
        if self.fails:
            raise ToolError(self.fails)
        return self.answer

    def settle(self) -> None:
        self.polled.wait(20)


def test_it_is_not_asked_more_often_than_its_period() -> None:
    tool = Tool()
    tool.settle()
    for _ in range(4):
        tool.now += 1.0
        assert tool.polled.latest() == "one"
    assert tool.asked == 1
    tool.answer = "two"
    tool.now += 1.0
    tool.settle()
    assert (tool.polled.latest(), tool.asked) == ("two", 2)


def test_an_old_answer_ages_out_with_the_newest_reason() -> None:
    tool = Tool()
    tool.settle()
    tool.fails = "It is broken."
    tool.now += 5.0
    tool.settle()
    assert tool.polled.latest() == "one", "ten seconds more"
    tool.now += 11.0
    tool.settle()
    with pytest.raises(ToolError) as error:
        tool.polled.latest()
    assert error.value.reason == "It is broken."
    tool.fails = ""
    tool.now += 5.0
    tool.settle()
    assert tool.polled.latest() == "one"


def test_before_the_first_answer_there_is_none() -> None:
    release = threading.Event()
    polled = Polled(lambda: release.wait(20))
    with pytest.raises(ToolError, match="not answered yet"):
        polled.latest()
    release.set()
    polled.wait(20)
    assert polled.latest()


def test_a_tool_that_hangs_is_ended() -> None:
    with pytest.raises(ToolError, match="in time"):
        run(["sleep", "60"], deadline=0.05)
