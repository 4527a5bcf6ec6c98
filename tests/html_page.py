"""A page of HTML as its elements, for the tests of both reports."""

import json
from html.parser import HTMLParser

VOID = {"meta", "link", "input", "br", "img"}
DRAWN = {"line", "path", "circle", "rect", "g", "use", "image"}


class Page(HTMLParser):
    """Elements, their attributes and texts; unbalanced tags are errors."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.html, self.elements, self.open = html, [], []
        self.feed(html)
        self.close()
        assert self.open == []
        for e in self.elements:
            e["text"] = "".join(e["text"])

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice"
        element = {"tag": tag, "text": [], "inside": [e["tag"] for e in self.open], **dict(attrs)}
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        assert tag in DRAWN
        self.elements.append({"tag": tag, "text": [], **dict(attrs)})

    def handle_endtag(self, tag):
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self.open:
            element["text"].append(data)

    def all(self, tag, **attributes):
        """The elements of a tag; `class_` is the attribute class."""
        wanted = {name.rstrip("_"): value for name, value in attributes.items()}
        return [
            e
            for e in self.elements
            if e["tag"] == tag and all(v in e.get(name, "").split() for name, v in wanted.items())
        ]

    def one(self, tag, **attributes):
        (found,) = self.all(tag, **attributes)
        return found

    def folded(self, tag):
        """The texts of the elements of a tag that are folded away at first."""
        return [e["text"] for e in self.all(tag) if "details" in e["inside"]]

    def rows(self, name="table-0"):
        """The texts of the cells of a table's body, row by row."""
        body = self.html.split(f'id="{name}"')[1].split("<tbody>")[1].split("</tbody>")[0]
        rows = []
        for e in Page(f"<table>{body}</table>").elements:
            if e["tag"] == "tr":
                rows.append([])
            if e["tag"] in ("th", "td"):
                rows[-1].append(e["text"].strip())
        return rows

    @property
    def text(self):
        return " ".join(self.one("body")["text"].split())

    def data(self, t=0):
        return json.loads(self.one("script", id=f"data-{t}")["text"])
