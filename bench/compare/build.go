package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// buildCommit builds the command as it is at a commit, in a temporary worktree
// of git. The result is kept in cache.
func buildCommit(ctx context.Context, commit, cache string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--verify", commit+"^{commit}").Output()
	if err != nil {
		return "", fmt.Errorf("git knows no commit %q", commit)
	}
	binary := cachedBinary(cache, strings.TrimSpace(string(out)), buildArgs)
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	dir, err := os.MkdirTemp("", "pacer-compare-tree-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	tree := filepath.Join(dir, "tree")
	if err := command(ctx, ".", "git", "worktree", "add", "--quiet", "--detach", tree, commit); err != nil {
		return "", err
	}
	defer func() { _ = exec.Command("git", "worktree", "remove", "--force", tree).Run() }()
	return binary, build(ctx, tree, binary, buildArgs)
}

// buildArgs are the arguments of go. The version that go takes from git would be part of outputs.
var buildArgs = []string{"build", "-trimpath", "-buildvcs=false"}

// cachedBinary is the file that keeps the build of a commit. Other arguments of go are another build.
func cachedBinary(cache, commit string, args []string) string {
	return filepath.Join(cache, fmt.Sprintf("pacer-%s-%.4x", commit, sha256.Sum256([]byte(strings.Join(args, " ")))))
}

// build builds the command of a working tree, whole or not at all.
func build(ctx context.Context, tree, binary string, args []string) error {
	if err := os.MkdirAll(filepath.Dir(binary), 0o755); err != nil {
		return err
	}
	if err := command(ctx, tree, "go", append(args[:len(args):len(args)], "-o", binary+".new", "./cmd/pacer")...); err != nil {
		return err
	}
	return os.Rename(binary+".new", binary)
}

func command(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}
