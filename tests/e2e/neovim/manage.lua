--- The commands for skills, agents, memory, documents and conversations, on the example workspace.

package.path = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)) .. '/?.lua;' .. package.path
local observe = require('observe')
local seen = observe.seen

local folder = vim.env.NEXUS_TEST_WORKSPACE .. '/backend/auth-service'
local params = { workspaceFolder = vim.uri_from_fname(folder) }

local messages = {}

--- Run a command and wait for the next message that it shows.
local function message_of(command)
  local count = #messages
  vim.cmd(command)
  observe.wait('message of ' .. command, function()
    return #messages > count
  end)
  return messages[#messages]
end

local function page_of(command, view)
  return observe.read_page(command, view).text
end

local function with_params(more)
  return vim.tbl_extend('error', params, more)
end

--- A page that is asked for again until it meets a condition.
local function wait_page(command, view, condition)
  local text
  observe.wait(command, function()
    text = page_of(command, view)
    return condition(text)
  end)
  return text
end

local function skills()
  local empty = vim.api.nvim_create_buf(true, false)
  seen.skills = {
    list = page_of('NexusSkills', 'skills'),
    complete = vim.fn.getcompletion('NexusSkill ro', 'cmdline'),
    text = page_of('NexusSkill rotate-key', 'skill'),
    unknown = message_of('NexusSkill rotate'),
  }
  vim.api.nvim_buf_set_lines(empty, 0, -1, false, { 'above', 'below' })
  vim.b[empty].nexus_folder = folder
  vim.api.nvim_set_current_buf(empty)
  vim.cmd('1NexusSkill! rotate-key')
  observe.wait('the text of the skill', function()
    return vim.api.nvim_buf_line_count(empty) > 2
  end)
  seen.skills.inserted = observe.text(empty)
  seen.skills.followed = observe.follow('NexusSkills', 'skills', 'rotate-key')
end

local function agents()
  vim.fn.mkdir(folder .. '/src')
  seen.agents = {
    none = page_of('NexusAgents', 'agents'),
    usage = message_of('NexusAgent rename tokens'),
    spawned = message_of('NexusAgent spawn tokens cwd=src role=manager Review the tokens.'),
    below = message_of('NexusAgent spawn checks parent=tokens'),
    complete = {
      vim.fn.getcompletion('NexusAgent ', 'cmdline'),
      vim.fn.getcompletion('NexusAgent message to', 'cmdline'),
      vim.fn.getcompletion('NexusAgent spawn x ro', 'cmdline'),
    },
    list = page_of('tab NexusAgents', 'agents'),
    sent = message_of('NexusAgent message checks Be quick.'),
    waiting = observe.request('nexus/agent/messages', with_params({ agent = 'checks' })).messages[1].content,
    ended = message_of('NexusAgent dispose tokens'),
    gone = message_of('NexusAgent dispose tokens'),
  }
end

local function conversation()
  for number = 1, 8 do
    local said = {
      { role = 'user', content = ('Review auth/part%d.py. Never log a secret.'):format(number) },
      { role = 'assistant', content = ('It is fine. '):rep(60) },
    }
    observe.request('nexus/session/append', with_params({ session = 'review', messages = said }))
  end
  seen.conversation = {
    complete = vim.fn.getcompletion('NexusCompact re', 'cmdline'),
    memory = page_of('NexusMemory part7', 'memory'),
    important = page_of('NexusMemory', 'memory'),
    compacted = message_of('NexusCompact review'),
    undone = message_of('NexusUndoCompaction review'),
    again = message_of('NexusUndoCompaction review'),
  }
end

local function documents()
  seen.documents = { none = page_of('NexusKnowledge', 'knowledge') }
  local path = folder .. '/.nexus3/config.json'
  local config = vim.json.decode(table.concat(vim.fn.readfile(path), '\n'))
  config.memory = { knowledge = { paths = { 'docs' } } }
  vim.fn.mkdir(folder .. '/docs')
  local lines = { '# Deploy', '', 'Talk.', '', '## Rollback', '', 'Run `make rollback`.' }
  vim.fn.writefile(lines, folder .. '/docs/deploy.md')
  vim.fn.writefile({ vim.json.encode(config) }, path)
  seen.documents.result = wait_page('NexusKnowledge a rollback', 'knowledge', function(text)
    return not vim.startswith(text, 'No passage')
  end)
  seen.documents.status = wait_page('NexusKnowledge', 'knowledge', function(text)
    return not text:find('being indexed', 1, true)
  end)
  seen.documents.followed = observe.follow('NexusKnowledge a rollback', 'knowledge', 'Run `make')
end

observe.run(function()
  vim.notify = function(message, level)
    table.insert(messages, { level = level or vim.log.levels.INFO, message = message })
  end
  observe.install()
  observe.open_attached(folder .. '/.nexus3/NEXUS.md')
  skills()
  vim.cmd.edit(folder .. '/.nexus3/NEXUS.md')
  agents()
  conversation()
  documents()
  seen.status = page_of('NexusStatus', 'status')
end)

vim.cmd.quitall({ bang = true })
