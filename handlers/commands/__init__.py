"""Carries out the commands, one module per noun; `table` maps names to functions, `control_socket` asks a server to run
one."""
