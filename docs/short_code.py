"""Marks short code in a sentence or a table, so that it is not broken: `--policy` at its hyphens.

docs/images/site.css has the style of the class.
"""

import re

MOST = 28  # characters; a line of a phone has some 40
SHORT = re.compile(rf"<code>(?=[^<\n]{{1,{MOST}}}</code>)")


def on_page_content(html: str, **page: object) -> str:
    """Called by mkdocs with the HTML of each page."""
    return SHORT.sub('<code class="short">', html)
