"""A page of HTML as its elements, for the tests of both reports."""

import json
from html.parser import HTMLParser

VOID = {"meta", "link", "input", "br", "img"}
DRAWN = {"line", "path", "circle", "rect", "g", "use", "image"}


class Page(HTMLParser):
    """Elements, their attributes and texts; unbalanced tags are errors."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.elements, self.open = [], []
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
        return [
            e
            for e in self.elements
            if e["tag"] == tag
            and all(value in e.get(name, "").split() for name, value in attributes.items())
        ]

    def one(self, tag, **attributes):
        (found,) = self.all(tag, **attributes)
        return found

    @property
    def text(self):
        return " ".join(self.one("body")["text"].split())

    def data(self, t=0):
        return json.loads(self.one("script", id=f"data-{t}")["text"])
