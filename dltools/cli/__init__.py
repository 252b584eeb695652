"""The command-line tools: parse, call, print, exit. Nothing else prints or exits."""
