"""Trajectories as flat columns with an index, in memory or on a memory-mapped disk.

A `TrajectorySet` never copies what it can point to. Its columns hold the steps of many
trajectories one after another; an index says where each trajectory starts and how long
it is. Selecting trajectories makes a new index over the same columns, so choosing half of
a set that is larger than memory costs a few bytes per trajectory.
"""

from pubc.trajectory.arrays import Array
from pubc.trajectory.columns import Columns, Trajectory
from pubc.trajectory.join import concatenate
from pubc.trajectory.problem import Problem
from pubc.trajectory.sets import BLOCK, TrajectorySet

__all__ = ["BLOCK", "Array", "Columns", "Problem", "Trajectory", "TrajectorySet", "concatenate"]
