"""The commands of the command line, a module a subject: words and options, and what does the work is imported late."""
