"""headwork below JAX: arrays in, arrays out, on the CPU. JAX itself is loaded when first used."""

from typing import TYPE_CHECKING, Any

from headwork.extras import needs

if TYPE_CHECKING:
    from headwork.jax.attention import dot_product_attention

__all__ = ["dot_product_attention"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'headwork.jax' has no attribute '{name}'")
    needs("jax")
    from headwork.jax import attention

    globals()[name] = found = getattr(attention, name)
    return found
