-- job_submit.lua for Slurm, printed by pacer advise. It writes each submission with GPUs into a directory that
-- pacer advise reads, and shows a user what pacer said of that user's last submission like it. It does no network
-- call, changes no job, and an error of its own is logged only. Lua 5.1 or later.

local dir = "@DIR@"
local slots = 1000 -- submissions that pacer has not read yet; older ones are overwritten
local next_slot = 0

local function quote(text)
   return '"' .. text:gsub('[%c"\\]', function(c) return string.format("\\u%04x", c:byte()) end) .. '"'
end

local function object(fields)
   local out = {}
   for name, value in pairs(fields) do
      if type(value) == "string" and value ~= "" then
         out[#out + 1] = quote(name) .. ":" .. quote(value)
      elseif type(value) == "number" and value > 0 and value < slurm.NO_VAL16 then
         out[#out + 1] = quote(name) .. ":" .. string.format("%.0f", value)
      end
   end
   table.sort(out)
   return "{" .. table.concat(out, ",") .. "}"
end

-- key names equal submissions alike, as a file.
local function key_of(text)
   local sum = 5381
   for i = 1, math.min(#text, 16384) do sum = (sum * 33 + text:byte(i)) % 2147483648 end
   return string.format("%d-%d", #text, sum)
end

local function advise(job)
   local fields = {
      comment = job.comment, tres_per_node = job.tres_per_node, tres_per_job = job.tres_per_job, tres_per_task = job.tres_per_task,
      nodes = job.min_nodes, tasks = job.num_tasks, array = job.array_inx, script = job.script,
      user = job.user_name or tostring(job.user_id) -- what others submit is not shown
   }
   local all = (job.tres_per_node or "") .. (job.tres_per_job or "") .. (job.tres_per_task or "")
   if not all:find("gpu") then return end
   local key = key_of(object(fields))
   local known = io.open(dir .. "/advice/" .. key, "r")
   if known then
      for line in known:lines() do slurm.log_user("%s", line) end
      known:close()
   end
   fields.key, fields.name = key, job.name
   local path = string.format("%s/new/%03d", dir, next_slot)
   next_slot = (next_slot + 1) % slots
   local file = assert(io.open(path .. ".part", "w"))
   local wrote = file:write(object(fields), "\n")
   assert(file:close() and wrote and os.rename(path .. ".part", path .. ".json"))
end

function slurm_job_submit(job_desc, part_list, submit_uid)
   local ok, err = pcall(advise, job_desc)
   if not ok then slurm.log_info("pacer: %s", tostring(err)) end
   return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
   return slurm.SUCCESS
end

return slurm.SUCCESS
