# SPDX-License-Identifier: Apache-2.0
"""What tests check, as far as their text tells: a static model at both ends of a change.

Test modules are *followed*: an interpreter over syntax trees walks through their statements with
values where the text has them and with canonical words where it does not. What it meets on the way
is the model: assertions with their tolerances, skips, seeds, loops, replaced objects. Sources are
read from git objects; nothing is imported and nothing runs.

    values      what an expression stands for            folding      operators and pure functions
    events      what a test does that counts             known        calls that mean something
    follower    expressions and statements               calling      functions, classes, decorators
    modules     files of one side, imports               collected    tests, marks, parameters, ids
    strength    what an assertion compares               settings     pytest's ini options
    compared    one test at base and head                weakened     the whole change, one answer
"""
