"""``perfmodel figures``: every figure as table, PDF and PNG, and a gallery of them."""

import sys
from html import escape
from pathlib import Path
from string import Template

from perfmodel import __version__
from perfmodel.checks import refusal
from perfmodel.cli.options import add_json
from perfmodel.cli.text import say, say_json, table
from perfmodel.files import write_table_atomic, write_text_atomic

#: Digits of the numbers in the tables.
_DIGITS = 6

_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Figures of perfmodel $version</title>
<style>
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; }
h2 { font-size: 1.2rem; margin: 0 0 .5rem; }
nav ol { padding-left: 1.5rem; }
figure { margin: 0; }
.picture { display: block; }
section { margin: 2.5rem 0; padding-top: 1.5rem; border-top: 1px solid #8886; }
img { display: block; width: 100%; height: auto; }
img { background: #fff; border-radius: 4px; }
figcaption { margin: .75rem 0 0; max-width: 48rem; }
a { color: light-dark(#0645ad, #8ab4f8); }
@media (min-width: 62rem) { img { padding: .5rem; box-sizing: border-box; } }
</style>
</head>
<body>
<main>
<h1>Concurrent GEMMs on a GPU: model beside measurement</h1>
<p>Made by <code>perfmodel figures</code>, version $version. Each number is marked as measured,
modelled or published, in the picture and in its table.</p>
<nav aria-label="Figures"><ol>
$links
</ol></nav>
$sections
</main>
</body>
</html>
""")

_LINK = Template('<li><a href="#$name">$title</a></li>')

_SECTION = Template("""<section id="$name">
<h2>$title</h2>
<figure>
<a class="picture" href="$name.png"><img src="$name.png" alt="$title: described below"></a>
<figcaption>$caption
<br><a href="$name.pdf">PDF</a> · <a href="$name.csv">table (CSV)</a></figcaption>
</figure>
</section>""")


def add_parser(commands):
    """Add the command."""
    parser = commands.add_parser(
        "figures", help="regenerate the figures, model beside measurement",
        description="Write figures as NAME.csv, NAME.pdf and NAME.png, and index.html with all.",
        epilog="example: perfmodel figures roofline parity -o figures-of-today")
    parser.add_argument("names", nargs="*", metavar="NAME", help="figures to write (all)")
    parser.add_argument("-o", "--output", default="out/figures", metavar="DIR",
                        help="folder to write to (out/figures)")
    parser.add_argument("--list", action="store_true", help="list the figures, write nothing")
    add_json(parser)
    parser.set_defaults(run=run)


def run(given):
    """Run the command."""
    # Here, so that other commands need not wait for matplotlib and pandas.
    from perfmodel.figures import NAMES, load

    modules = {name: load(name) for name in dict.fromkeys(given.names or NAMES)}
    if given.list:
        _say_list({name: module.TITLE for name, module in modules.items()}, given.json)
        return
    if not given.output:
        raise refusal("-o", "the name of a folder", given.output)
    folder = _folder(given.output)
    written = [_write(name, modules[name], folder) for name in _progress(modules)]
    index = folder / "index.html"
    # Those of earlier runs stay in the gallery.
    present = [name for name in NAMES if (folder / f"{name}.png").exists()]
    write_text_atomic(index, gallery({name: load(name) for name in present}))
    if given.json:
        say_json({"figures": written, "index": str(index)})
    else:
        say("\n".join(figure[kind] for figure in written for kind in ("csv", "pdf", "png")))
        say(str(index))


def gallery(modules):
    """Page with the pictures that lie beside it, their captions and links, str of HTML.

    Parameters
    ----------
    modules : mapping of figure name to module
        With ``TITLE`` and ``CAPTION``.
    """
    texts = [
        {"name": name, "title": escape(module.TITLE), "caption": escape(module.CAPTION)}
        for name, module in modules.items()
    ]
    return _PAGE.substitute(
        version=__version__,
        links="\n".join(_LINK.substitute(text) for text in texts),
        sections="\n".join(_SECTION.substitute(text) for text in texts),
    )


def _say_list(titles, as_json):
    if as_json:
        say_json({"figures": [{"name": name, "title": title} for name, title in titles.items()]})
    else:
        say(table(["name", "title"], titles.items()))


def _write(name, module, folder):
    """Table and pictures of one figure; dict of what and where."""
    from perfmodel.plotting import save

    data = module.compute()
    csv = folder / f"{name}.csv"
    write_table_atomic(csv, _rounded(data))
    pdf, png = save(module.draw(data), folder / name)
    paths = {"csv": csv, "pdf": pdf, "png": png}
    return {"name": name, "title": module.TITLE} | {kind: str(path) for kind, path in paths.items()}


def _rounded(data):
    floats = data.select_dtypes("float").columns
    rounded = {
        name: [float(f"{value:.{_DIGITS}g}") for value in data[name].tolist()] for name in floats}
    return data.assign(**rounded)


def _folder(text):
    folder = Path(text)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise refusal("--output", "a folder", text, "there is a file of that name") from None
    return folder


def _progress(names):
    """The names, with a bar on a terminal if they take longer than a second."""
    from tqdm import tqdm

    return tqdm(names, desc="figures", unit="figure", delay=1, disable=None, file=sys.stderr,
                leave=False)
