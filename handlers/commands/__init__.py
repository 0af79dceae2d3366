"""What commands do, one module per noun; `table` knows them by name, `control_socket` asks a server for them."""
