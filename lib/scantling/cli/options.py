"""Arguments and options that several commands have."""

import click

PATH = click.Path(dir_okay=False)
FOLDER = click.Path(file_okay=False)
FILE = click.argument("file")
JSON = click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
