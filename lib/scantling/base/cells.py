"""Text of a file in the cell of a table that another program opens: data there too, never markup
and never a formula."""

MARKUP = "\\|<>`*_[]!#~"
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for the start of one


def markdown_cell(text: str) -> str:
    """A text that cannot end its column, nor begin a tag, a link or an image, nor call a name."""
    for sign in MARKUP:
        text = text.replace(sign, f"\\{sign}")
    return text.replace("\n", " ").replace("@", "@\u200b")


def spreadsheet_cell(text: str) -> str:
    """A text that a spreadsheet shows and does not run: an apostrophe before a formula's beginning
    (https://owasp.org/www-community/attacks/CSV_Injection). Numbers stay as they are."""
    if not text.startswith(FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text
