"""Changes between two runs (`opconform compare`), and over many (`opconform history`)."""
