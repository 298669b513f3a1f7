"""Where the token looks: attention weights beside the field."""

from __future__ import annotations

from matplotlib.figure import Figure

from spectrakan.errors import ShapeError
from spectrakan.report.figures.sample import Values
from spectrakan.report.figures.side_by_side import fields_side_by_side


def attention_maps(field: Values, weights: Values) -> Figure:
    """A field `(*space)` in one or two dimensions, and the attention of each head `(heads, *space)` times the cells.

    There 1 means: looked at as much as the mean cell. All heads have one scale of colour.
    """
    if weights.shape[1:] != field.shape:
        raise ShapeError(
            f"expected weights of shape (heads, {', '.join(map(str, field.shape))}), got {weights.shape}"
        )
    heads = {f"attention {head}": weights[head] * field.size for head in range(len(weights))}
    return fields_side_by_side({"field": field, **heads}, own_scale=("field",))
