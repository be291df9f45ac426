// Package elasticflow holds ElasticFlow (Gu et al., ASPLOS 2023): deadlines are met with as
// few device-seconds as possible, and jobs with deadlines that cannot be met are refused.
//
//	level                       a number of devices that a job can run on, faster than all lower ones
//	share                       the highest level that a plan may use
//	minimum satisfactory share  the lowest share with which a job meets its deadline
//	plan                        the levels of a job over the future
//	best effort                 a job without a deadline, or with one that cannot be met
//
// profile.go has the free devices over the future, share.go the minimum satisfactory share
// and admission, grow.go the use of spare devices.
//
// Start with elasticflow.go and share.go.
package elasticflow
