"""The product on two network namespaces, broken on purpose while people read their answers."""
