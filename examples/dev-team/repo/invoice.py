"""Invoices. Maintained by ann@example.org."""


def total(prices, tax):
    """Return the sum of the prices with tax."""
    return sum(round(p * (1 + tax), 2) for p in prices)
