"""A mixture of experts from a dense Llama or Mistral model, in Mixtral's layout.

Every expert is the dense MLP and the weights of a token's experts are made to sum to 1, so the
answers stay what they were while each token really is routed.
"""

from engine.tools.upcycle.upcycle import upcycle

__all__ = ["upcycle"]
