"""headwork below torch: tensors in, tensors out."""

from headwork.errors import HeadworkError
from headwork.extras import how_to_install

try:
    import torch as _torch  # noqa: F401  # only to say how to get it
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise HeadworkError(f"headwork.torch needs torch, which is not installed: {how_to_install('torch')}") from None

from headwork.torch.attention import explain, scaled_dot_product_attention
from headwork.torch.full import attention
from headwork.torch.layer import MultiheadAttention
from headwork.torch.path import Path
from headwork.torch.replace import restore, use
from headwork.torch.report import Report, report
from headwork.torch.varlen import attention_varlen

__all__ = [
    "MultiheadAttention",
    "Path",
    "Report",
    "attention",
    "attention_varlen",
    "explain",
    "report",
    "restore",
    "scaled_dot_product_attention",
    "use",
]
