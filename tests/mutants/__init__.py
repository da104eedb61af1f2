"""Faults put into the code on purpose, one at a time: which of them do the tests see?"""
