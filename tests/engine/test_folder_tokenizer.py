"""A folder's tokenizer files become the tokens, special ids and template of the model."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from engine.checkpoint import TokenizerMetadata, open_checkpoint
from engine.errors import CheckpointError
from engine.text.tokenizer import TextTokenizer
from tests.engine.hf_models import VOCABULARY, write_hf_model
from tests.engine.tiny_model import CHAT_TEMPLATE, SPECIAL, vocabulary


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer") / "model"
    write_hf_model(folder, "llama-linear")
    return folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    """A copy to change."""
    return Path(shutil.copytree(sound, tmp_path / "model"))


def tokenizer(folder: Path) -> TokenizerMetadata:
    return open_checkpoint(folder).tokenizer


def change(folder: Path, name: str, **values: Any) -> None:
    path = folder / name
    held = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**held, **values}))


def test_tokens_kinds_and_special_ids_are_read(folder: Path) -> None:
    found = tokenizer(folder)
    assert found.tokens == vocabulary()
    assert [index for index, kind in enumerate(found.token_types) if kind == 3] == [0, 1, 2]
    assert (found.bos_id, found.eos_id, found.padding_id, found.unknown_id) == (1, 2, 2, 0)
    assert found.eos_ids == [2, 0]
    assert found.tokenizer_json == (folder / "tokenizer.json").read_text()
    assert found.chat_template == CHAT_TEMPLATE
    checkpoint = open_checkpoint(folder)
    assert checkpoint.token_count == len(vocabulary()) < checkpoint.config.vocab_size == VOCABULARY


def test_text_goes_there_and_back(folder: Path) -> None:
    text = TextTokenizer(tokenizer(folder))
    ids = text.encode_trusted("<|im_start|>hello wörld<|im_end|>")
    assert (ids[0], ids[-1]) == (1, 2)
    assert text.decode(ids) == "hello wörld"
    assert text.stop_ids == {0, 2}


def test_a_template_may_stand_in_the_settings(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink()
    assert tokenizer(folder).chat_template is None
    change(folder, "tokenizer_config.json", chat_template="{{ one }}")
    assert tokenizer(folder).chat_template == "{{ one }}"
    several = [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]
    change(folder, "tokenizer_config.json", chat_template=several)
    assert tokenizer(folder).chat_template == "d"


def test_special_tokens_may_be_objects_or_stand_in_their_own_file(folder: Path) -> None:
    change(folder, "tokenizer_config.json", bos_token={"content": SPECIAL[0]}, eos_token=None)
    change(folder, "special_tokens_map.json", eos_token=SPECIAL[1])
    found = tokenizer(folder)
    assert (found.bos_id, found.eos_id) == (0, 1)


def test_what_ends_an_answer_is_in_config_json_when_nowhere_else(folder: Path) -> None:
    (folder / "generation_config.json").unlink()
    change(folder, "tokenizer_config.json", eos_token=None)
    change(folder, "config.json", eos_token_id=[1, 0])
    found = tokenizer(folder)
    assert (found.eos_id, found.eos_ids) == (1, [1, 0])


@pytest.mark.hazard("double-bos")
def test_a_plain_prompt_starts_as_the_post_processor_says(folder: Path) -> None:
    assert not tokenizer(folder).add_bos
    change(folder, "tokenizer_config.json", add_bos_token=True)
    assert tokenizer(folder).add_bos
    text = {"Sequence": {"id": "A", "type_id": 0}}
    start = {"SpecialToken": {"id": "<|im_start|>", "type_id": 0}}
    for single, expected in ([start, text], True), ([text], False):
        template = {"type": "TemplateProcessing", "single": single, "pair": []}
        processor = {"type": "Sequence", "processors": [{"type": "ByteLevel"}, template]}
        change(folder, "tokenizer.json", post_processor=processor)
        assert tokenizer(folder).add_bos is expected


def test_an_added_token_without_a_row_is_left_out(folder: Path) -> None:
    added = json.loads((folder / "tokenizer.json").read_text())["added_tokens"]
    beyond = {**added[0], "id": VOCABULARY, "content": "<image>"}
    change(folder, "tokenizer.json", added_tokens=[*added, beyond])
    assert "<image>" not in tokenizer(folder).tokens


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ({"model": None}, "its model is missing"),
        ({"model": {"type": "BPE", "vocab": 1}}, "its vocabulary is missing"),
        ({"model": {"type": "BPE", "vocab": {}}, "added_tokens": []}, "vocabulary is empty"),
        ({"model": {"type": "BPE", "vocab": {"a": -1}}}, "'a' has an impossible id -1"),
        ({"model": {"type": "BPE", "vocab": {"a": 2.0}}}, "'a' has an impossible id 2.0"),
        ({"model": {"type": "BPE", "vocab": {"a": 300}}}, "embedding has only 300 rows"),
        ({"model": {"type": "BPE", "vocab": {"a": 1, "b": 1}}}, "'a' and 'b' share the id 1"),
        ({"model": {"type": "Unigram", "vocab": [["a", 0.0], []]}}, "entry 1 of the vocabulary"),
        ({"added_tokens": [{"id": 1}]}, "an added token is damaged"),
    ],
)
def test_a_damaged_vocabulary_is_refused(folder: Path, values: dict[str, Any], wanted: str) -> None:
    change(folder, "tokenizer.json", **values)
    with pytest.raises(CheckpointError, match=r"tokenizer\.json: ") as caught:
        tokenizer(folder)
    assert wanted in str(caught.value)


def test_an_end_that_is_no_token_is_refused(folder: Path) -> None:
    change(folder, "generation_config.json", eos_token_id=[2, 299])
    with pytest.raises(CheckpointError, match="eos_ids 299 is not one of the 264 tokens"):
        tokenizer(folder)


def test_a_folder_without_a_tokenizer_says_how_to_make_one(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    with pytest.raises(CheckpointError, match=r"holds no tokenizer\.json; make one with"):
        tokenizer(folder)
