from slug import slug


def test_words():
    assert slug("Hello World") == "hello-world"


def test_runs_of_other_characters():
    assert slug("Fish & Chips") == "fish-chips"
