"""The environment and tables of settings, without Django.

Door: env, runtime_env, table, unknown_names.
Imports: machine.
"""
