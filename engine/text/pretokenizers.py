"""How byte-level vocabularies cut text into words before any merge, by GGUF's names for it.

What splits digits, words and spaces must be what the model was trained with. The rules are those of
the models' own tokenizer.json files and of llama.cpp, src/llama-vocab.cpp.
"""

from collections.abc import Mapping

import msgspec
from tokenizers import Regex
from tokenizers.pre_tokenizers import ByteLevel, Digits, PreTokenizer, Sequence, Split


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """One way of cutting text into words."""

    patterns: tuple[str, ...] = ()
    """Regular expressions, each applied to the pieces of those before it; without any, GPT-2's."""
    single_digits: bool = False
    whole_words: bool = False
    """A word that is a token itself is taken as it is, whatever the merges say."""
    compose: bool = False
    """Text is put into Unicode's composed form (NFC) first."""

    def pre_tokenizer(self) -> PreTokenizer:
        """What cuts the text, and then spells it in the byte alphabet."""
        steps: list[PreTokenizer] = [
            Split(Regex(pattern), behavior="isolated") for pattern in self.patterns
        ]
        if self.single_digits:
            steps.append(Digits(individual_digits=True))
        steps.append(ByteLevel(add_prefix_space=False, use_regex=not self.patterns))
        return Sequence(steps)


_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+|"
_SIGNS = r" ?[^\s\p{L}\p{N}]+[\r\n]*|"

_LLAMA3 = _CONTRACTION + _WORD + r"\p{N}{1,3}|" + _SIGNS + _SPACES
_QWEN2 = _CONTRACTION + _WORD + r"\p{N}|" + _SIGNS + _SPACES
_QWEN35 = (
    _CONTRACTION
    + r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|"
    + _SPACES
)
_TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|"
    r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + _SPACES
)
_DEEPSEEK3 = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|"
    r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|" + _SPACES
)
_CASED = (
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af"
    "\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1"
    "\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd"
    "\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d"
    "\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4"
    "\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec"
    "\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128"
    "\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b"
    "\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787"
    "\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a"
    "\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2"
    "\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943"
)
"""Letters that come in two cases, as DeepSeek LLM's rules list them."""

_LLAMA_BPE = Rules(patterns=(_LLAMA3,), whole_words=True)
_QWEN = Rules(patterns=(_QWEN2,), compose=True)

RULES: Mapping[str, Rules] = {
    "default": Rules(),
    "gpt-2": Rules(),
    "smollm": Rules(single_digits=True),
    "llama-bpe": _LLAMA_BPE,
    "llama3": _LLAMA_BPE,
    "llama-v3": _LLAMA_BPE,
    "qwen2": _QWEN,
    "deepseek-r1-qwen": _QWEN,
    "qwen35": Rules(patterns=(_QWEN35,), compose=True),
    "tekken": Rules(patterns=(_TEKKEN,), whole_words=True),
    "deepseek-llm": Rules(
        patterns=(
            r"[\r\n]",
            rf"\s?[{_CASED}]+",
            r"\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
            r"\s+$",
            r"[\u0800-\u9fa5\uac00-\ud7ff]+",
        ),
        single_digits=True,
    ),
    "deepseek-v3": Rules(
        patterns=(r"\p{N}{1,3}", r"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", _DEEPSEEK3)
    ),
}
"""By the name in `tokenizer.ggml.pre`."""
