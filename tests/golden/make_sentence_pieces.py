"""Writes sentence_pieces.json: a small vocabulary and the ids that SentencePiece itself gives.

Run by hand, with the package sentencepiece installed, which the tests do not need:

    python -m tests.golden.make_sentence_pieces
"""

import io
import json
from importlib import import_module
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
TEXT = FOLDER.parent / "data" / "public_domain.txt"
TEXTS = [
    "Hello world",
    " leading and trailing ",
    "runs   of    spaces     here",
    "",
    " ",
    "\n\nlines\n\tand tabs\r\n",
    "你好，世界 😀👩‍👧 é ﬁ",
    "<think>the nation</think> shall",
    "<s></s><0x0A><unk>",
    "1234567890 3.14",
    "▁ ▁▁x",
    "def f(x):\n    return x**2  # ok",
    TEXT.read_text()[:800],
]


def main() -> None:
    library: Any = import_module("sentencepiece")
    model = io.BytesIO()
    library.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT.read_text().splitlines()),
        model_writer=model,
        model_type="bpe",
        vocab_size=700,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        user_defined_symbols=["<think>", "</think>"],
        minloglevel=2,
    )
    pieces = library.SentencePieceProcessor(model_proto=model.getvalue())
    ids = range(pieces.vocab_size())
    content = {
        "tokens": [pieces.id_to_piece(index) for index in ids],
        "scores": [round(pieces.get_score(index), 6) for index in ids],
        "token_types": [kind(pieces, index) for index in ids],
        "texts": [{"text": text, "ids": pieces.encode(text)} for text in TEXTS],
    }
    (FOLDER / "sentence_pieces.json").write_text(json.dumps(content, ensure_ascii=False) + "\n")


def kind(pieces: Any, index: int) -> int:
    """By the numbers of GGUF."""
    if pieces.is_unknown(index):
        return 2
    if pieces.is_control(index):
        return 3
    if pieces.is_byte(index):
        return 6
    return 4 if pieces.id_to_piece(index) in ("<think>", "</think>") else 1


if __name__ == "__main__":
    main()
