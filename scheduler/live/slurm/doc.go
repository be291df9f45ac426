// Package slurm is Slurm as a live.Cluster. It reads with squeue and sinfo or scontrol in JSON,
// of Slurm 22.05 and later, and writes with scontrol. It needs the rights of an operator: users
// may not set the AdminComment, in which the records are.
//
// A job belongs to pacer if its comment begins with "pacer:", as in
//
//	sbatch --hold --requeue --gres=gpu:2 --comment="pacer:model=GPT2-small,batch=64,steps=20000" job.sh
//
// Start with cluster.go (the engine), read.go (what Slurm says) and request.go (the comment).
package slurm
