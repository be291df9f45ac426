#!/usr/bin/env bash
# published-giants.sh: published runs of networks with up to 671 billion parameters, and of networks of 2025 and 2026.
. "$(dirname "$0")/lib.bash"

# table reads NETWORK|MODEL|DEVICES|SEQUENCE|PLAN|STACK|PUBLISHED|UNIT|SOURCE and prints a table with predictions.
table() {
  echo '| network | devices | sequence | plan | training stack | published | predicted | ratio | inside the interval | source |'
  echo '|---|---|---|---|---|---|---|---|---|---|'
  while IFS='|' read -r network model devices seq plan stack published unit source; do
    "$pacer" predict -m "$model" -a "${devices#* }" --plan "$plan" --seq "$seq" --framework "$stack" -o json </dev/null >"$scratch/answer" || [ $? = 3 ]
    awk -v line="| $network | $devices | $seq | $plan | $stack |" -v published="$published" -v unit="$unit" -v source="$source" '
      { gsub(/[",:]/, "") } { v[$1] = $2 }
      END {
        s = v["step_time_s"]; ratio = unit == "s" ? s / published : published / v["tflops_per_gpu"]
        predicted = unit == "s" ? s : v["tflops_per_gpu"]
        inside = ratio <= s / v["step_time_lo_s"] && ratio >= s / v["step_time_hi_s"]
        printf "%s %s %s | %.3g | %.2f | %s | %s |\n", line, published, unit, predicted, ratio, inside ? "yes" : "no", source
      }' "$scratch/answer"
  done
}

table <<'END' | renew published-giants
Llama 3.1 405B|llama3.1-405b|8192 H100|8192|dp=64,tp=8,pp=16,vp=7,mb=1,ga=32,zero=1,sp=1|Megatron Core@2024-03|430|TFLOP/s|Llama team 2024 (arXiv 2407.21783), table 4
Llama 3.1 405B|llama3.1-405b|16384 H100|8192|dp=128,tp=8,pp=16,vp=7,mb=1,ga=16,zero=1,sp=1|Megatron Core@2024-03|400|TFLOP/s|same
Llama 3.1 405B|llama3.1-405b|16384 H100|131072|dp=8,tp=8,pp=16,cp=16,vp=7,mb=1,ga=16,zero=1,sp=1|Megatron Core@2024-03|380|TFLOP/s|same
DeepSeek-V3|deepseek-v3|2048 H800|4096|dp=128,pp=16,ep=64,mb=1,ga=120,zero=1,precision=fp8|Megatron Core@0.13 ep=backward|19.9|s|DeepSeek-AI 2024 (arXiv 2412.19437), table 1: 180,000 device-hours for 10^12 tokens, 15,360 sequences a step
Nemotron-4 340B|nemotron-4-340b|1536 H100|4096|dp=16,tp=8,pp=12,vp=8,mb=1,ga=48,zero=1,sp=1|Megatron Core@2024-03|10.3|s|NVIDIA 2024 (arXiv 2406.11704), table 2
Nemotron-4 340B|nemotron-4-340b|6144 H100|4096|dp=64,tp=8,pp=12,vp=8,mb=1,ga=36,zero=1,sp=1|Megatron Core@2024-03|8.0|s|same
MT-NLG 530B|mt-nlg-530b|2240 A100|2048|dp=8,tp=8,pp=35,mb=1,ga=240,recompute=full,precision=fp16|Megatron-DeepSpeed@2021|60.1|s|Smith et al. 2022 (arXiv 2201.11990), section 2.3
MT-NLG 530B|mt-nlg-530b|3360 A100|2048|dp=12,tp=8,pp=35,mb=1,ga=160,recompute=full,precision=fp16|Megatron-DeepSpeed@2021|44.4|s|same
GPT-3 175B|gpt3-175b|1024 A100|2048|dp=8,tp=8,pp=16,mb=1,ga=192,recompute=full,precision=fp16|Megatron-LM@2021|30.7|s|Narayanan et al. SC 2021, section 5.1: 140 TFLOP/s at a batch of 1536
END

table <<'END' | renew published-today
Llama 4 Maverick|llama4-maverick|128 GB200|8192|dp=64,pp=2,ep=64,vp=12,mb=1,ga=16,zero=1|NeMo@2025-05|7.78|s|NVIDIA/dgxc-benchmarking c5c765f, release 25.05
DeepSeek-V3|deepseek-v3|256 GB300|4096|dp=128,pp=2,ep=32,vp=8,mb=1,ga=32,zero=1,precision=mxfp8|Megatron-Bridge@26.08|10.4|s|NVIDIA-NeMo/Megatron-Bridge 067f987, release 26.08
Nemotron 3 Super|nemotron-3-super|64 GB200|8192|dp=32,tp=2,ep=64,mb=1,ga=16,precision=fp4|Megatron-Bridge@26.08 routing=fused ep=none|9.14|s|same
Nemotron 3 Nano|nemotron-3-nano|8 B200|8192|dp=8,ep=8,mb=2,ga=32,precision=mxfp8|Megatron-Bridge@26.04|16.0|s|same, release 26.04.01
Qwen3-235B-A22B|qwen3-235b-a22b|256 H800|4096|dp=4,tp=2,pp=32,ep=8,vp=3,mb=1,ga=512,zero=1,sp=1,recompute=selective|Megatron Core@0.13|22.4|s|InternLM/xtuner b934f46
END
