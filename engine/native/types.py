"""The layouts of src/types.h."""

import ctypes
from ctypes import POINTER, c_float, c_int32, c_int64, c_void_p

INT8, INT4 = 0, 1
"""Kinds of matrices."""
KV_KINDS = {"fp32": 0, "bf16": 1, "int8": 2}
ACTIVATIONS = {"silu": 0, "gelu_tanh": 1}


class Matrix(ctypes.Structure):
    _fields_ = (
        ("kind", c_int64),
        ("rows", c_int64),
        ("columns", c_int64),
        ("group", c_int64),
        ("codes", c_void_p),
        ("scales", c_void_p),
        ("sums", c_void_p),
        ("bias", c_void_p),
    )


class Linear(ctypes.Structure):
    _fields_ = (("count", c_int64), ("parts", POINTER(Matrix)))


class Cache(ctypes.Structure):
    _fields_ = (
        ("kind", c_int64),
        ("keys", c_void_p),
        ("values", c_void_p),
        ("key_scales", c_void_p),
        ("value_scales", c_void_p),
    )


class Attention(ctypes.Structure):
    _fields_ = (
        ("norm", c_void_p),
        ("eps", c_float),
        ("scale", c_float),
        ("qkv", Linear),
        ("output", Linear),
        ("cache", Cache),
        ("heads", c_int64),
        ("kv_heads", c_int64),
        ("dim", c_int64),
        ("query_norm", c_void_p),
        ("key_norm", c_void_p),
        ("head_eps", c_float),
        ("softcap", c_float),
        ("window", c_int64),
    )


class Mlp(ctypes.Structure):
    _fields_ = (
        ("norm", c_void_p),
        ("eps", c_float),
        ("activation", c_int32),
        ("gate_up", Linear),
        ("down", Linear),
    )


class Step(ctypes.Structure):
    _fields_ = (
        ("tokens", c_int64),
        ("hidden", c_int64),
        ("rows", c_int64),
        ("firsts", c_void_p),
        ("starts", c_void_p),
        ("counts", c_void_p),
        ("offsets", c_void_p),
        ("tables", c_void_p),
        ("slots", c_void_p),
        ("cosines", c_void_p),
        ("sines", c_void_p),
        ("rotated", c_int64),
    )
