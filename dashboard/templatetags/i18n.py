"""Faster versions of Django's translation tags, under the same names: a page has hundreds of them.

Django resolves a text like a variable and builds a sentence on each rendering. Here both are prepared when the template
is parsed. More complex uses (a message context, `as`) are left to Django's nodes, and so is a translation with wrong
placeholders. Templates use `{% load i18n %}`: of two libraries with one name, Django loads that of the later app.
"""

from __future__ import annotations

from typing import Any

from django.template import Library, Node
from django.template.base import Parser, Token, render_value_in_context
from django.template.context import Context
from django.templatetags import i18n as djangos
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext

register = Library()
register.tags.update(djangos.register.tags)
register.filters.update(djangos.register.filters)


class Text(Node):
    """A node with a text without variables; `%` is doubled in the catalogue."""

    child_nodelists = ()

    def __init__(self, text: str) -> None:
        self.text = text.replace("%", "%%")

    def render(self, context: Context) -> SafeString:
        """Return the text in the request's language."""
        return SafeString(gettext(self.text).replace("%%", "%"))


class Sentence(Node):
    """A node with a text with variables, and its plural if it counts."""

    child_nodelists = ()

    def __init__(self, block: djangos.BlockTranslateNode) -> None:
        self.block = block
        self.singular, self.names = block.render_token_list(block.singular)
        self.plural, more = block.render_token_list(block.plural or [])
        self.names = [*dict.fromkeys([*self.names, *more])]

    def render(self, context: Context) -> SafeString:
        """Return the sentence in the request's language, with its values rendered like variables."""
        block = self.block
        values: dict[str, Any] = {name: value.resolve(context) for name, value in block.extra_context.items()}
        if self.plural and block.counter and block.countervar:
            count = values[block.countervar] = block.counter.resolve(context)
            text = ngettext(self.singular, self.plural, count)
        else:
            text = gettext(self.singular)
        try:
            shown = {
                name: render_value_in_context(values[name] if name in values else context[name], context)
                for name in self.names
            }
            return SafeString(text % shown)
        except (KeyError, ValueError):  # in the translation or the context: Django falls back, or omits the value
            return SafeString(block.render(context))


@register.tag("translate")
@register.tag("trans")
def translate(parser: Parser, token: Token) -> Node:
    """Parse the `translate` tag."""
    node = djangos.do_translate(parser, token)
    literal = getattr(node.filter_expression.var, "literal", None)
    is_plain = not (node.noop or node.asvar or node.message_context or node.filter_expression.filters)
    return Text(str(literal)) if is_plain and isinstance(literal, str) else node


@register.tag("blocktranslate")
@register.tag("blocktrans")
def blocktranslate(parser: Parser, token: Token) -> Node:
    """Parse the `blocktranslate` tag."""
    node = djangos.do_block_translate(parser, token)
    return node if node.asvar or node.message_context else Sentence(node)
