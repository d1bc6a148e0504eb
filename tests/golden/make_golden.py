"""Writes the answers that `transformers` gives with real models' own weights.

Run by hand when the prompts or the models change:

    python -m tests.golden.make_golden smollm2   # the bundled model: greedy_fp32.json
    python -m tests.golden.make_golden gemma3    # Gemma-3-270M: gemma3_270m_*.json

The oracle reads the same GGUF through transformers' own loader and dequantiser, so it shares no
code with the engine. Sums in another order differ in the last bits, so a token whose two best
logits nearly tie could go either way in a correct engine: such a prompt is refused (see
MIN_MARGIN); the smallest margin of each prompt is stored beside its tokens. Prompts were chosen
for variety first and replaced only when they had such a tie.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

from engine.bundled import bundled_model
from tests.engine.gemma import assemble_gemma

FOLDER = Path(__file__).parent
MIN_MARGIN = 1e-3
"""Smallest gap between the two best logits that a summation order cannot close."""
TEXT = FOLDER.parent / "data" / "public_domain.txt"

PROMPTS = [
    "What is the capital of France?",
    "Write a short poem about the sea.",
    "Explain photosynthesis to a ten-year-old.",
    "List three uses for a paperclip.",
    "Who wrote Pride and Prejudice?",
    "What is 17 times 23?",
    "Write a Python function that reverses a string.",
    "Translate 'good morning' into Spanish.",
    "Summarise the plot of Romeo and Juliet in two sentences.",
    "Why is the sky blue?",
    "Give me a recipe for pancakes.",
    "What are the primary colours?",
    "Describe a thunderstorm using only sounds.",
    "How do I stay focused while studying?",
    "What happened in 1969?",
    "Name the planets of the solar system in order.",
    "你好，请介绍一下你自己。",
    'Write an e-mail declining a meeting politely; keep it under 50 words & mention "Tuesday".',
    "If all cats are animals and some animals are black, are all cats black?",
    "Tell me a joke about computers 😀",
    "What is the difference between a virus and a bacterium?",
    "Suggest a name for a small bakery.",
    "How does a bicycle stay upright?",
    "What should I pack for a week in the mountains?",
    "Explain what an operating system does.",
    "Describe the taste of a lemon.",
]
CONTINUED = [
    "The capital of France is",
    'def fibonacci(n):\n    """Return the n-th Fibonacci number."""\n',
    "水是生命之源，",
    "Once upon a time, in a village by the sea, there lived an old",
    "1, 2, 3, 4, 5, 6,",
    TEXT.read_text()[:3400],
]
"""For a model that only continues; the last is longer than Gemma's sliding window."""

ENCODED = [
    "Hello world",
    " a",
    "a  b   c    d",
    "\n\nx\n\n\n",
    "\t\ttabs",
    "你好，世界！这是一个测试。",
    "😀👩\u200d👩\u200d👧🇨🇳",
    "def f(x):\n    return x**2 + 1  # ok\n",
    "1234567890 3.14159 1e-10",
    "مرحبا بالعالم",
    "हिन्दी में",
    "<table><tr><td>x</td></tr></table>",
    "é é ﬁ",
    "\x00\x01\x7f",
    "https://example.com/a?b=c&d=%20",
    "I'm you're we'll don't",
    "\r\n\r\nwin\r\n",
    "[multimodal] x",
    "日本語のテキスト、カタカナ",
    "한국어 텍스트",
]
"""Texts of many scripts, without control tokens."""


def main() -> None:
    makers: dict[str, Callable[[], None]] = {"smollm2": make_smollm2, "gemma3": make_gemma3}
    makers[sys.argv[1]]()


def make_smollm2() -> None:
    path = bundled_model()
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)

    def chat(prompt: str) -> list[int]:
        messages = [{"role": "user", "content": prompt}]
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return list(tokenizer(text, add_special_tokens=False)["input_ids"])

    prompts = ((prompt, chat(prompt)) for prompt in PROMPTS)
    record(path, prompts, FOLDER / "greedy_fp32.json", tokens=64, wanted=20)


def make_gemma3() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = assemble_gemma(Path(folder))
        tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)

        def encode(text: str) -> list[int]:
            return list(tokenizer(text, add_special_tokens=False)["input_ids"])

        prompts = [(prompt, [tokenizer.bos_token_id, *encode(prompt)]) for prompt in CONTINUED]
        record(path, prompts, FOLDER / "gemma3_270m_fp32.json", tokens=48, wanted=len(prompts))
        write(
            FOLDER / "gemma3_270m_ids.json",
            [{"text": text, "ids": encode(text)} for text in ENCODED],
        )


def record(
    path: Path,
    prompts: Iterable[tuple[str, list[int]]],
    output: Path,
    *,
    tokens: int,
    wanted: int,
) -> None:
    model = load_model(path)
    entries: list[dict[str, object]] = []
    for prompt, ids in prompts:
        answer, margin = continue_greedily(model, ids, tokens)
        verdict = "kept" if margin >= MIN_MARGIN else "near tie, left out"
        print(f"{margin:.5f} {verdict}: {prompt[:60]}")
        if margin >= MIN_MARGIN and len(entries) < wanted:
            entries.append(
                {"prompt": prompt, "ids": ids, "tokens": answer, "min_margin": round(margin, 6)}
            )
    if len(entries) < wanted:
        raise SystemExit(f"Only {len(entries)} prompts are free of near ties; add some.")
    write(output, entries)


def write(output: Path, entries: list[dict[str, object]]) -> None:
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
    output.write_text(f"[\n{lines}\n]\n")


def load_model(path: Path) -> Any:
    """Built by hand because `from_pretrained` wants one more package for GGUF files."""
    config = AutoConfig.from_pretrained(path.parent, gguf_file=path.name)
    build: Any = AutoModelForCausalLM.from_config
    model: Any = build(config)
    model.eval()
    read: Any = load_gguf_checkpoint
    tensors = read(str(path), return_tensors=True, model_to_load=model)["tensors"]
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    if unexpected or set(missing) - {"lm_head.weight"}:
        raise SystemExit(f"The oracle did not load: {missing} missing, {unexpected} unexpected.")
    model.tie_weights()
    return model


@torch.inference_mode()
def continue_greedily(model: Any, ids: list[int], count: int) -> tuple[list[int], float]:
    """`count` greedy tokens, running on through end-of-text, and the smallest top-2 margin."""
    tokens: list[int] = []
    margin = float("inf")
    cache = None
    fed = torch.tensor([ids])
    for _ in range(count):
        output = model(input_ids=fed, past_key_values=cache, use_cache=True)
        cache = output.past_key_values
        best = output.logits[0, -1].topk(2)
        margin = min(margin, float(best.values[0] - best.values[1]))
        tokens.append(int(best.indices[0]))
        fed = best.indices[:1].unsqueeze(0)
    return tokens, margin


if __name__ == "__main__":
    main()
