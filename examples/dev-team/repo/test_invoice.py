from invoice import total


def test_total():
    assert total([0.99, 0.99, 0.99], 0.19) == 3.53
