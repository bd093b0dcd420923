"""Formulas as MathML, which browsers draw by themselves: the site needs no network and no script for them."""

from __future__ import annotations

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)


def inline(writer, node) -> None:
    writer.body.append(_mathml(node))
    raise nodes.SkipNode


def block(writer, node) -> None:
    writer.body.append(f'<div class="formula">{_mathml(node, as_block=True)}</div>')
    raise nodes.SkipNode


def _mathml(node, **options) -> str:
    try:
        return tex2mathml(node.astext(), **options)
    except MathError as error:
        logger.warning("a formula that has no MathML: %s", error, location=node)
        return ""


def setup(app) -> dict:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True}
