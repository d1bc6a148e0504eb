"""What the engine refuses or reports is read in the reader's language, parts and all."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from django.test import Client
from django.utils import translation

from dashboard.choices import Fault
from dashboard.lifecycle.reports import exit_cause
from dashboard.sentences import Sentence, sentence_of
from dashboard.translations import compile_stale
from engine.config import ParallelPlan
from engine.errors import EngineError, PlanError, Said, said
from engine.protocol.agent import Observed, ProcessState, decode_from_agent, encode
from engine.protocol.stats import EngineStats
from tests.dashboard.pages_cast import operator
from tests.dashboard.tiny_gguf import write_model

__all__ = ["operator"]


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    compile_stale()


@pytest.fixture
def chinese() -> Iterator[None]:
    with translation.override("zh-hans"):
        yield


def test_an_error_keeps_its_template_and_parts(chinese: None) -> None:
    with pytest.raises(PlanError) as refused:
        ParallelPlan(tp=65)
    assert str(refused.value) == "tp must be between 1 and 64, not 65."
    assert str(sentence_of(refused.value)) == "tp 必须在 1 到 64 之间，而不是 65。"


def test_free_text_with_a_percent_sign_is_left_alone() -> None:
    error = EngineError("100% of %(nothing)s")
    assert str(error) == str(sentence_of(error)) == "100% of %(nothing)s"


@pytest.mark.django_db
def test_a_damaged_file_is_refused_in_chinese(operator: Client, tmp_path: Path) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(write_model(path).read_bytes()[:-100])
    operator.post("/language/", {"language": "zh-hans", "next": "/models/"})
    (refusal,) = operator.post("/models/", {"path": str(path)}).context["form"].errors["path"]
    assert refusal.startswith("cut.gguf 不完整：")
    assert "张量 'blk.1.ffn_down.weight' 占用字节" in refusal


@pytest.mark.django_db
def test_a_missing_file_is_refused_in_chinese(operator: Client) -> None:
    operator.post("/language/", {"language": "zh-hans", "next": "/models/"})
    (refusal,) = operator.post("/models/", {"path": "/nowhere.gguf"}).context["form"].errors["path"]
    assert refusal == "无法打开 /nowhere.gguf：没有这个文件或目录。"


def test_a_reason_crosses_the_wire_and_the_database(chinese: None) -> None:
    inner = said("This rank failed: %(reason)s", reason=said("Permission denied"))
    reason = said("Rank %(rank)s failed: %(reason)s", rank=1, reason=inner)
    stats = EngineStats(launch="l1", status="failed", detail=reason)
    received = decode_from_agent(encode(Observed(generation=1, processes=[], engines=[stats])))
    assert isinstance(received, Observed)
    sentence = Sentence.of(received.engines[0].detail)
    stored = msgspec.json.decode(msgspec.json.encode(sentence.pack()))
    read = Sentence.unpack(stored["message"], stored["params"])
    assert str(read) == "rank 1 失败：此 rank 失败：权限不足"


def test_a_process_that_could_not_start_says_why(chinese: None) -> None:
    reason = said("It could not be started: %(problem)s", problem=Said("Permission denied"))
    state = ProcessState(
        key="l1:head", launch="l1", role="head", rank=None, status="exited", reason=reason
    )
    cause = exit_cause(Sentence("The head on %(node)s", node="a"), state)
    assert cause.fault == Fault.HEAD
    assert str(cause.sentence).endswith("：无法启动：权限不足")
