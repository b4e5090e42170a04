"""Mutation testing of the suite: which deliberately broken daemons do the cases detect?"""
