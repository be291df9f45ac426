package executor

import (
	"fmt"
	"os"
	"strconv"
)

// Variables of a command on each node of a job.
const (
	NodeVar    = "PACER_NODE"      // number of the node, from 0
	NodesVar   = "PACER_NODES"     // number of nodes
	AttemptVar = "PACER_ATTEMPT"   // differs each time that the job runs
	NameVar    = "PACER_NODE_NAME" // name of the node in the cluster
)

// Node is the place of this process in a job.
type Node struct {
	Number, Nodes int
	Attempt       string
}

// ThisNode reads the variables of the job that this process is in. Without them it is the only node.
func ThisNode() (n Node, err error) {
	n = Node{Nodes: 1, Attempt: os.Getenv(AttemptVar)}
	for name, v := range map[string]*int{NodeVar: &n.Number, NodesVar: &n.Nodes} {
		text, ok := os.LookupEnv(name)
		if !ok {
			continue
		}
		if *v, err = strconv.Atoi(text); err != nil {
			return n, fmt.Errorf("executor: %s=%q is not a whole number", name, text)
		}
	}
	if n.Nodes < 1 || n.Number < 0 || n.Number >= n.Nodes || n.Nodes > 1 && !jobKey.MatchString(n.Attempt) {
		return n, fmt.Errorf("executor: %s=%d, %s=%d and %s=%q are no node of a job", NodeVar, n.Number, NodesVar, n.Nodes, AttemptVar, n.Attempt)
	}
	return n, nil
}
