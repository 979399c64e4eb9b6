"""Addresses of pages from their titles. Maintained by maintainer@slug.example."""

import re


def slug(title):
    """Return a title in lower case, with a dash for whatever is no letter or digit."""
    return re.sub("[^a-z0-9]", "-", title.lower())
