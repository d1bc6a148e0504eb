"""Make a mixture of experts from a dense Llama or Mistral model; it answers as the dense one does.

`python -m engine.tools.upcycle SOURCE TARGET --experts N [--per-token K] [--seed S]`
"""

import argparse
import sys
from pathlib import Path

from engine.bundled import bundled_model
from engine.errors import EngineError
from engine.tools.upcycle import upcycle


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m engine.tools.upcycle", description=__doc__)
    parser.add_argument("source", help="a GGUF file, a Hugging Face folder, or `bundled`")
    parser.add_argument("target", type=Path, help="the new file or folder")
    parser.add_argument("--experts", type=int, required=True)
    parser.add_argument("--per-token", type=int, default=2, help="experts a token passes through")
    parser.add_argument("--seed", type=_seed, default=0, help="of the routers' weights")
    options = parser.parse_args(arguments)
    try:
        source = bundled_model() if options.source == "bundled" else Path(options.source)
        upcycle(source, options.target, options.experts, options.per_token, seed=options.seed)
    except EngineError as error:
        print(error, file=sys.stderr)
        return 1
    print(options.target)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
