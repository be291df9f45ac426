// Package number writes numbers, for people and for machines.
package number
