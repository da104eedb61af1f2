"""The site of the documents, by Sphinx: `make site` builds it into build/site, without the internet."""

import re
from typing import Any

import spartan_ng

project = "spartan_ng"
author = "The spartan_ng developers"
release = version = spartan_ng.__version__
project_copyright = author

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # of other sites, and there are no widgets
html_theme = "furo"
html_title = "spartan_ng"
html_show_sphinx = False
highlight_language = "none"
napoleon_google_docstring = False
napoleon_use_rtype = False
autodoc_typehints = "none"
nitpicky = False

_PARAMETER = re.compile(r"[\w*, .]+ : |\s")
_RULE = re.compile(r"-{3,}$")


def say_first(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Put what our docstrings say behind the parameters before them, where numpydoc's form wants it."""
    rules = [i for i, line in enumerate(lines) if _RULE.match(line)]
    if not rules or lines[rules[0] - 1] != "Parameters":
        return
    end = rules[1] - 1 if len(rules) > 1 else len(lines)
    after = range(rules[0] + 1, end)
    first = next((i for i in after if lines[i] and not _PARAMETER.match(lines[i])), end)
    lines[rules[0] - 1 : end] = [*lines[first:end], "", *lines[rules[0] - 1 : first]]


def setup(app: Any) -> None:
    """Be asked before napoleon, which is at 500."""
    app.connect("autodoc-process-docstring", say_first, priority=400)
