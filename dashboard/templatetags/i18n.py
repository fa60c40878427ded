"""Django's tags of translation, under their own names and quicker: a page has hundreds of them.

Django resolves a text as if it were a variable, and puts a sentence together anew, each time. Here both are made once,
when the template is read. Whatever is more than a text or a sentence (a context of the message, a name to keep it
under) is left to Django's own nodes, and so is a translation whose placeholders are wrong. Templates say
`{% load i18n %}`: of two libraries of one name Django takes that of the later app.
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
    """A text without variables; `%` is doubled in the catalogue."""

    child_nodelists = ()

    def __init__(self, text: str) -> None:
        self.text = text.replace("%", "%%")

    def render(self, context: Context) -> SafeString:
        """The text in the language of the request."""
        return SafeString(gettext(self.text).replace("%%", "%"))


class Sentence(Node):
    """A text with variables, and one for many where it counts."""

    child_nodelists = ()

    def __init__(self, block: djangos.BlockTranslateNode) -> None:
        self.block = block
        self.singular, self.names = block.render_token_list(block.singular)
        self.plural, more = block.render_token_list(block.plural or [])
        self.names = [*dict.fromkeys([*self.names, *more])]

    def render(self, context: Context) -> SafeString:
        """The sentence in the language of the request, with its values shown as variables are."""
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
        except (KeyError, ValueError):  # of the translation or the context: Django says it in English, or leaves it out
            return SafeString(block.render(context))


@register.tag("translate")
@register.tag("trans")
def translate(parser: Parser, token: Token) -> Node:
    """A text."""
    node = djangos.do_translate(parser, token)
    literal = getattr(node.filter_expression.var, "literal", None)
    is_plain = not (node.noop or node.asvar or node.message_context or node.filter_expression.filters)
    return Text(str(literal)) if is_plain and isinstance(literal, str) else node


@register.tag("blocktranslate")
@register.tag("blocktrans")
def blocktranslate(parser: Parser, token: Token) -> Node:
    """A sentence with values."""
    node = djangos.do_block_translate(parser, token)
    return node if node.asvar or node.message_context else Sentence(node)
