"""The HTML site of `opconform report --html`: static pages that open from a file."""
